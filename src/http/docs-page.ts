// GET /docs as HTML: quick start with the gateway's own address, endpoints, errors, the key maker. One page that loads
// nothing: style and script are inside it, and its Content-Security-Policy names them by their hashes.

import { API_ERRORS, type ApiError } from './api-errors.ts';
import { API_ROUTES, type ApiRoute } from './describe-api.ts';
import { DOCS_SCRIPT } from './docs-script.ts';
import { DOCS_STYLE } from './docs-style.ts';
import { KEY_MAKER } from './key-maker.ts';

/** The page, for a gateway at an origin. */
export function buildDocsPage(origin: string): string {
  const base = escapeHtml(origin);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Turnpike API</title>
<link rel="icon" href="data:,">
<style>${DOCS_STYLE}</style>
</head>
<body>
<a class="skip" href="#start">Skip to the content</a>
<header>
<h1>Turnpike <span>API</span></h1>
<p class="lead">OpenAI-compatible inference. Change <code>base_url</code> in the SDK you already use, and nothing else.</p>
<nav aria-label="On this page"><ul>
<li><a href="#start">Quick start</a></li><li><a href="#endpoints">Endpoints</a></li><li><a href="#errors">Errors</a></li>
<li><a href="#keys">Key maker</a></li><li><a href="/openapi.json">openapi.json</a></li>
</ul></nav>
</header>
<main>
${buildQuickStart(base)}
<section aria-labelledby="endpoints"><h2 id="endpoints">Endpoints</h2>
<p>The key goes into <code>Authorization: Bearer tp_…</code>. Every answer carries <code>x-request-id</code>: it names the request’s receipt, <code>GET /v1/receipts/{request_id}</code>.</p>
${buildTable('Table of endpoints', ['Method', 'Path', 'What', 'Scope'], API_ROUTES.map(buildRouteRow))}
</section>
<section aria-labelledby="errors"><h2 id="errors">Errors</h2>
<p>Always <code>{"error":{"message","type","param","code"}}</code>. <code>param</code> is the path of the field, such as <code>messages[0].role</code>. <code>Retry-After</code> and <code>x-should-retry</code> say whether and when to try again; the SDKs heed them.</p>
${buildTable('Table of errors', ['Status', 'Code', 'When'], API_ERRORS.map(buildErrorRow))}
</section>
${KEY_MAKER}
</main>
<footer>This page loads nothing from elsewhere and sends nothing anywhere.</footer>
<script>${DOCS_SCRIPT}</script>
</body>
</html>
`;
}

let headers: Readonly<Record<string, string>> | null = null;

/** The page's headers, made once. The hashes are of what is in it, so they are right by construction. */
export async function readDocsHeaders(): Promise<Readonly<Record<string, string>>> {
  headers ??= await buildHeaders();
  return headers;
}

async function buildHeaders(): Promise<Readonly<Record<string, string>>> {
  const policy = [
    "default-src 'none'",
    `script-src '${await toSourceHash(DOCS_SCRIPT)}'`,
    `style-src '${await toSourceHash(DOCS_STYLE)}'`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': policy.join('; '),
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cache-control': 'no-cache',
  };
}

async function toSourceHash(source: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(source));
  return `sha256-${btoa(String.fromCharCode(...new Uint8Array(digest)))}`;
}

function buildQuickStart(base: string): string {
  const examples = [
    [
      'curl',
      `curl -N ${base}/v1/chat/completions \\
  -H 'authorization: Bearer tp_…' -H 'content-type: application/json' \\
  -d '{"model":"MODEL","stream":true,"messages":[{"role":"user","content":"Hello"}]}'`,
    ],
    [
      'Python',
      `from openai import OpenAI

client = OpenAI(base_url="${base}/v1", api_key="tp_…")
answer = client.chat.completions.create(
    model="MODEL",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`,
    ],
    [
      'Node',
      `import OpenAI from 'openai';

const client = new OpenAI({ baseURL: '${base}/v1', apiKey: 'tp_…' });
const answer = await client.chat.completions.create({
  model: 'MODEL',
  messages: [{ role: 'user', content: 'Hello' }],
});
console.log(answer.choices[0].message.content);`,
    ],
  ];
  const blocks = examples.map(([name, code]) => {
    return `<h3>${name}</h3>\n<pre tabindex="0" aria-label="${name} example"><code>${code}</code></pre>`;
  });
  return `<section aria-labelledby="start"><h2 id="start">Quick start</h2>
<p>Base URL: <code>${base}/v1</code>. <code>MODEL</code> is one of those that <code>GET /v1/models</code> lists for your key.</p>
${blocks.join('\n')}
</section>`;
}

function buildRouteRow({ method, path, summary, scope }: ApiRoute): readonly string[] {
  const needed = scope === undefined ? 'none' : (scope ?? 'own receipts; receipts:read for all');
  return [method.toUpperCase(), `<code>${path}</code>`, summary, needed];
}

function buildErrorRow({ status, code, when, places }: ApiError): readonly string[] {
  return [places.includes('stream') ? 'in a stream' : String(status), `<code>${code}</code>`, escapeHtml(when)];
}

/**
 * A table, whose rows become blocks on a narrow screen; with its roles written out, since such a layout takes them away.
 * Its region scrolls by itself where it must, and can be reached with the keyboard.
 */
function buildTable(name: string, heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const head = heads.map((text) => `<th scope="col" role="columnheader">${text}</th>`).join('');
  const body = rows.map((cells) => buildRow(cells.map((cell) => `<td role="cell">${cell}</td>`).join('')));
  return `<div class="scroll" role="region" aria-label="${name}" tabindex="0"><table role="table">
<thead role="rowgroup">${buildRow(head)}</thead>
<tbody role="rowgroup">
${body.join('\n')}
</tbody></table></div>`;
}

function buildRow(cells: string): string {
  return `<tr role="row">${cells}</tr>`;
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
