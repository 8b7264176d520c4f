// How the bridge reaches its inference server. A type only.

/** The part of `fetch` that the bridge uses; tests hand in a script. */
export type SendUpstream = (url: string, init: RequestInit) => Promise<Response>;
