// OpenAI's error envelope and what goes with it over HTTP (SPEC §3).

/** The closed set of `error.type` values (SPEC §3). */
export type ErrorType =
  'invalid_request_error' | 'requests' | 'tokens' | 'insufficient_quota' | 'server_error' | 'service_unavailable_error';

/** OpenAI's error envelope; all four fields always present. */
export type ErrorEnvelope = {
  readonly error: {
    readonly message: string;
    readonly type: ErrorType;
    readonly param: string | null;
    readonly code: string | null;
  };
};

/** An error as HTTP: status, envelope, and the headers that go with it. */
export type OpenAIError = {
  readonly status: number;
  readonly body: ErrorEnvelope;
  readonly headers: Readonly<Record<string, string>>;
};

/** Builds an error answer; `param` and headers only where there are any. */
export function buildErrorAnswer(
  status: number,
  message: string,
  type: ErrorType,
  code: string | null,
  param: string | null = null,
  headers: Readonly<Record<string, string>> = {},
): OpenAIError {
  return { status, body: { error: { message, type, param, code } }, headers };
}
