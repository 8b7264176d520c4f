// Reads what the operator configured: the var BASE_URL and the optional secret API_KEY.
// It names the rule that is broken and never repeats the value, because a value may hold a password.
// It does not try whether the server answers; the first request does that.

/** What the Worker's environment may hold. */
export interface BridgeEnv {
  readonly BASE_URL?: string;
  readonly API_KEY?: string;
}

/** A usable configuration: `baseUrl` has no trailing slash, `apiKey` is null when the server asks for none. */
export interface BridgeConfig {
  readonly baseUrl: string;
  readonly apiKey: string | null;
}

export type BridgeConfigResult =
  { readonly ok: true; readonly config: BridgeConfig } | { readonly ok: false; readonly message: string };

/** Turns the environment into a configuration, or into one sentence for the operator. */
export function parseBridgeConfig(env: BridgeEnv): BridgeConfigResult {
  const text = (env.BASE_URL ?? '').trim();
  if (text === '') return refuse('BASE_URL is not set. Give it on deploy: --var BASE_URL:https://host/v1');
  if (!URL.canParse(text)) return refuse('BASE_URL is not an absolute URL such as https://host/v1');
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    return refuse('BASE_URL must begin with http:// or https://');
  if (url.username !== '' || url.password !== '') {
    return refuse('BASE_URL must not hold a user or password. Put the key into the secret API_KEY');
  }
  if (url.search !== '' || url.hash !== '') return refuse('BASE_URL must not have a query or a fragment');
  const apiKey = (env.API_KEY ?? '').trim();
  // A header value that the runtime refuses would look like an unreachable server; say what it is.
  if (!/^[\x21-\x7e]*$/.test(apiKey)) return refuse('API_KEY holds characters that a header cannot carry');
  // Built from origin and path, so that a bare "?" or "#" at the end is gone too.
  const baseUrl = url.origin + url.pathname.replace(/\/+$/, '');
  return { ok: true, config: { baseUrl, apiKey: apiKey === '' ? null : apiKey } };
}

function refuse(message: string): BridgeConfigResult {
  return { ok: false, message };
}
