// Everything that can be refused or go wrong, as one union (SPEC §3). Its translation into an answer is in
// openai-error.ts.

/** Codes of a request field that cannot be accepted; all answer 400 with `param` set. */
export type ParameterCode =
  | 'missing_required_parameter'
  | 'invalid_type'
  | 'invalid_value'
  | 'integer_below_min_value'
  | 'integer_above_max_value'
  | 'decimal_below_min_value'
  | 'decimal_above_max_value'
  | 'array_above_max_length'
  | 'string_above_max_length'
  | 'empty_array'
  | 'unsupported_parameter'
  | 'unsupported_value'
  | 'unknown_parameter'
  | 'context_length_exceeded';

/** Whose limit refused a request. */
export type LimitScope = 'workspace' | 'key';

/** Where an upstream failure was seen; each has one status before the stream and one code inside it. */
export type UpstreamFailure =
  | 'upstream_unreachable'
  | 'upstream_error'
  | 'upstream_timeout'
  | 'upstream_disconnected'
  | 'upstream_misconfigured'
  | 'server_is_overloaded';

/** Every error the gateway can answer with. Units are in the field names; limits are per minute. */
export type GatewayError =
  | { readonly kind: 'invalid_api_key'; readonly reason: string }
  | { readonly kind: 'too_many_failed_keys' }
  | { readonly kind: 'insufficient_scope'; readonly scope: string }
  | { readonly kind: 'auth_unavailable' }
  | { readonly kind: 'catalog_unavailable' }
  | { readonly kind: 'model_not_found'; readonly model: string }
  | { readonly kind: 'receipt_not_found' }
  | { readonly kind: 'invalid_json'; readonly reason: string }
  | {
      readonly kind: 'invalid_parameter';
      readonly code: ParameterCode;
      readonly param: string;
      readonly message: string;
    }
  | {
      readonly kind: 'rate_limited';
      readonly bucket: 'requests' | 'tokens';
      readonly scope: LimitScope;
      readonly limit: number;
      readonly used: number;
      readonly requested: number;
      readonly retryAfterMs: number;
    }
  | {
      readonly kind: 'request_above_bucket';
      readonly scope: LimitScope;
      readonly limit: number;
      readonly requested: number;
    }
  | { readonly kind: 'concurrency_limited'; readonly scope: LimitScope; readonly limit: number; readonly used: number }
  | { readonly kind: 'insufficient_quota' }
  | { readonly kind: 'request_too_large'; readonly bodyBytesMax: number }
  | { readonly kind: 'unsupported_content_type'; readonly contentType: string }
  | { readonly kind: 'unsupported_content_encoding'; readonly contentEncoding: string }
  | { readonly kind: 'method_not_supported'; readonly method: string; readonly path: string; readonly allow: string }
  | { readonly kind: 'unknown_url'; readonly method: string; readonly path: string }
  | { readonly kind: 'upstream'; readonly failure: UpstreamFailure }
  | {
      readonly kind: 'upstream_rejected';
      readonly message: string;
      readonly param: string | null;
      readonly code: string | null;
    }
  | { readonly kind: 'request_stopped' }
  | { readonly kind: 'client_closed_request' }
  | { readonly kind: 'limiter_unavailable' }
  | { readonly kind: 'internal_error' };
