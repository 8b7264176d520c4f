// The script of GET /docs: the key maker. It mints a token with the browser's own randomness, hashes it there, shows what
// to paste where, and sends nothing: the page's Content-Security-Policy allows no connection at all. Plain JavaScript in a
// text, because it runs in browsers and is no part of the Worker; test/process/docs.test.ts runs it.

export const DOCS_SCRIPT = `'use strict';
(() => {
  const find = (id) => document.getElementById(id);
  const form = find('maker');
  const made = find('made');
  const fault = find('fault');

  const toHex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  const toBase64Url = (bytes) =>
    btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');

  async function mintToken(id) {
    const token = 'tp_' + id + '_' + toBase64Url(crypto.getRandomValues(new Uint8Array(32)));
    const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token));
    return { token, hash: 'sha256:' + toHex(new Uint8Array(digest)) };
  }

  const read = (id) => find(id).value.trim();

  /** The first field that cannot be used, with what is wrong; null when all can. */
  function findFault() {
    if (!/^[a-z0-9-]{1,64}$/.test(read('key-id'))) {
      return ['key-id', 'The key’s id is 1 to 64 of: small letters, digits, hyphens.'];
    }
    if (!/^[A-Za-z0-9._-]{1,64}$/.test(read('workspace'))) {
      return ['workspace', 'The workspace is 1 to 64 of: letters, digits, dots, underscores, hyphens.'];
    }
    for (const id of ['rpm', 'tpm', 'concurrency']) {
      const text = read(id);
      if (text !== '' && !(/^[0-9]{1,10}$/.test(text) && Number(text) <= 1e9)) {
        return [id, 'A limit is a whole number up to 1,000,000,000, or empty.'];
      }
    }
    const expires = read('expires');
    if (expires !== '' && !/^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(expires)) return ['expires', 'Expected a day.'];
    const scoped = document.querySelector('input[name=scope]:checked') !== null;
    return scoped ? null : ['scope-inference', 'Choose at least one scope.'];
  }

  function buildEntry(hash) {
    const entry = { workspace: read('workspace'), hash };
    if (read('name') !== '') entry.name = read('name');
    entry.scopes = Array.from(document.querySelectorAll('input[name=scope]:checked'), (box) => box.value);
    const models = read('models').split(',').map((model) => model.trim()).filter((model) => model !== '');
    if (models.length > 0) entry.models = models;
    const limits = {};
    for (const id of ['rpm', 'tpm', 'concurrency']) if (read(id) !== '') limits[id] = Number(read(id));
    if (Object.keys(limits).length > 0) entry.limits = limits;
    if (read('expires') !== '') entry.expires_at = read('expires') + 'T00:00:00Z';
    return entry;
  }

  const quote = (text) => "'" + text.replaceAll("'", "'\\\\''") + "'";

  function show(id, token, entry) {
    const value = JSON.stringify(entry);
    find('token').textContent = token;
    find('entry-key').textContent = 'key:' + id;
    find('entry-value').textContent = value;
    find('workspace-key').textContent = 'workspace:' + entry.workspace;
    const isLocal = ['127.0.0.1', 'localhost'].includes(location.hostname);
    const store = isLocal ? '--local --persist-to .turnpike' : '--remote';
    find('command').textContent =
      'npx wrangler kv key put ' + store + ' --binding KEYS ' + quote('key:' + id) + ' ' + quote(value);
    find('revoke').textContent = "INSERT INTO revoked_keys (key_id) VALUES ('" + id + "')";
    made.hidden = false;
    find('made-title').focus();
  }

  function clear() {
    for (const id of ['token', 'entry-key', 'entry-value', 'command', 'revoke']) find(id).textContent = '';
    made.hidden = true;
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    for (const input of form.querySelectorAll('[aria-invalid]')) input.removeAttribute('aria-invalid');
    const found = findFault();
    fault.textContent = found === null ? '' : found[1];
    if (found !== null) {
      clear();
      find(found[0]).setAttribute('aria-invalid', 'true');
      find(found[0]).focus();
      return;
    }
    const { token, hash } = await mintToken(read('key-id'));
    show(read('key-id'), token, buildEntry(hash));
  });

  find('forget').addEventListener('click', () => {
    clear();
    find('key-id').focus();
  });
  // A page that is come back to shows no token.
  addEventListener('pagehide', clear);

  for (const button of document.querySelectorAll('button[data-copy]')) {
    button.addEventListener('click', async () => {
      const source = find(button.dataset.copy);
      const before = button.textContent;
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = 'Copied';
      } catch {
        getSelection().selectAllChildren(source);
        button.textContent = 'Selected';
      }
      setTimeout(() => (button.textContent = before), 1500);
    });
  }
  for (const element of document.querySelectorAll('[data-needs-script]')) element.hidden = false;
})();
`;
