// The form and the result of the key maker on GET /docs, as HTML. What it does is in docs-script.ts.

/** A labelled field; its hint and the form's fault are told with it, not as its name. */
function buildField(id: string, label: string, hint: string, attributes: string): string {
  return `<div class="field"><label for="${id}">${label}</label><small id="${id}-hint">${hint}</small><input id="${id}" aria-describedby="${id}-hint fault" ${attributes}></div>`;
}

export const KEY_MAKER = `<section aria-labelledby="keys"><h2 id="keys">Key maker</h2>
<p>For operators. The token is made in this browser and shown once; nothing leaves this page. What the gateway keeps is its hash, which you paste into KV.</p>
<noscript><p class="fault">The key maker needs JavaScript. The README has a line of shell that does the same.</p></noscript>
<form id="maker" novalidate autocomplete="off" hidden data-needs-script>
<div class="fields">
${buildField('key-id', 'Key id', 'Shows in the token and in receipts', 'value="prod-web" maxlength="64" spellcheck="false" autocapitalize="none"')}
${buildField('workspace', 'Workspace', 'Whose limits, credits and receipts', 'value="acme" maxlength="64" spellcheck="false" autocapitalize="none"')}
${buildField('name', 'Name', 'For you alone; optional', 'maxlength="200"')}
</div>
<fieldset><legend>Scopes</legend><div class="checks">
<label><input type="checkbox" name="scope" id="scope-inference" value="inference:write" checked><code>inference:write</code></label>
<label><input type="checkbox" name="scope" value="models:read" checked><code>models:read</code></label>
<label><input type="checkbox" name="scope" value="receipts:read"><code>receipts:read</code></label>
</div></fieldset>
<div class="fields">
${buildField('rpm', 'Requests a minute', 'Empty: the workspace’s limit alone', 'inputmode="numeric"')}
${buildField('tpm', 'Tokens a minute', 'Empty: the workspace’s limit alone', 'inputmode="numeric"')}
${buildField('concurrency', 'Requests at a time', 'Empty: the workspace’s limit alone', 'inputmode="numeric"')}
</div>
<div class="fields">
${buildField('models', 'Models', 'Separated by commas; empty: all', 'spellcheck="false" autocapitalize="none"')}
${buildField('expires', 'Expires', 'At midnight UTC; empty: never', 'type="date"')}
</div>
<div class="actions"><button type="submit">Make the key</button><p class="fault" id="fault" role="alert"></p></div>
</form>
<div class="card made" id="made" hidden>
<h3 id="made-title" tabindex="-1">Your new key</h3>
<div class="row"><h4>The token, shown once</h4><button class="plain" type="button" data-copy="token" aria-label="Copy the token">Copy</button></div>
<pre class="wrap" id="token"></pre>
<p class="hint">Give it to the caller. It cannot be shown again: the gateway knows only its hash.</p>
<ol>
<li>In the Cloudflare dashboard open <strong>Storage &amp; databases → Workers KV</strong>, the namespace bound as <code>KEYS</code>, <strong>KV Pairs</strong>, and add:
<div class="row"><h4>Key</h4><button class="plain" type="button" data-copy="entry-key" aria-label="Copy the entry’s key">Copy</button></div>
<pre class="wrap" id="entry-key"></pre>
<div class="row"><h4>Value</h4><button class="plain" type="button" data-copy="entry-value" aria-label="Copy the entry’s value">Copy</button></div>
<pre class="wrap" id="entry-value"></pre></li>
<li>If there is no entry <code id="workspace-key"></code> yet, add it with the value <code>{}</code>.</li>
<li>Instead of the first step, from a shell in the repository:
<div class="row"><h4>Command</h4><button class="plain" type="button" data-copy="command" aria-label="Copy the command">Copy</button></div>
<pre class="wrap" id="command"></pre></li>
<li>To revoke it within ten seconds: <strong>Storage &amp; databases → D1</strong>, the database <code>turnpike</code>, <strong>Console</strong>:
<div class="row"><h4>SQL</h4><button class="plain" type="button" data-copy="revoke" aria-label="Copy the SQL">Copy</button></div>
<pre class="wrap" id="revoke"></pre></li>
</ol>
<div class="actions"><button class="plain" type="button" id="forget">Forget this token</button></div>
</div>
</section>`;
