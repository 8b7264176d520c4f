// The API described: every route with its scope, parameters and answers, and OpenAPI 3.1 made of that (SPEC §1). Request
// bodies are taken from the schemas that check them. It answers nothing itself.

import { RECEIPT_STATUSES } from '../core/receipt.ts';
import { readRequestSchema } from '../openai/request-schemas.ts';
import { SERVED_ENDPOINTS } from '../openai/served-endpoints.ts';
import { API_ERRORS, type ApiError, type ErrorPlace } from './api-errors.ts';
import { API_SCHEMAS, type JsonSchema } from './api-schemas.ts';

/** One route. `scope` is null where the own key is enough, undefined where none is needed. */
export type ApiRoute = {
  readonly method: 'get' | 'post';
  readonly path: string;
  readonly summary: string;
  readonly scope?: string | null;
  readonly places: readonly ErrorPlace[];
  readonly parameters: readonly JsonSchema[];
  /** The answer's schema by content type. */
  readonly answer: Readonly<Record<string, JsonSchema>>;
};

const VERSION = '0.1.0';
const json = (name: string): ApiRoute['answer'] => ({
  'application/json': { $ref: `#/components/schemas/${name}` },
});
const query = (name: string, schema: JsonSchema, description: string, required = false): JsonSchema => {
  return { name, in: 'query', required, schema, description };
};
const inPath = (name: string, description: string): JsonSchema => {
  return { name, in: 'path', required: true, schema: { type: 'string' }, description };
};
const TIME = 'ISO 8601 or Unix seconds';

/** What is said of an inference endpoint: its summary, and the schemas of its answer and of an event of its stream. */
const INFERENCE: Readonly<Record<string, readonly [summary: string, answer: string, event: string]>> = {
  '/v1/chat/completions': ['Create a chat completion', 'ChatCompletion', 'ChatCompletionChunk'],
  '/v1/completions': ['Create a text completion', 'TextCompletion', 'TextCompletion'],
  '/v1/responses': ['Create a response', 'Response', 'Response'],
};

const KEY: readonly ErrorPlace[] = ['everywhere', 'key'];
const READS: readonly ApiRoute[] = [
  {
    method: 'get',
    path: '/v1/models',
    summary: 'List the models this key may call',
    scope: 'models:read',
    places: [...KEY, 'model'],
    parameters: [],
    answer: json('ModelList'),
  },
  {
    method: 'get',
    path: '/v1/models/{id}',
    summary: 'One model, by id, alias or id@revision',
    scope: 'models:read',
    places: [...KEY, 'model'],
    parameters: [inPath('id', 'May contain / and @, raw or percent-encoded.')],
    answer: json('Model'),
  },
  {
    method: 'get',
    path: '/v1/receipts',
    summary: 'List receipts, newest first',
    scope: null,
    places: [...KEY, 'query', 'limiter'],
    parameters: [
      query('limit', { type: 'integer', minimum: 1, maximum: 100, default: 20 }, 'Receipts on a page.'),
      query('cursor', { type: 'string' }, 'The next_cursor of the page before.'),
      query('model', { type: 'string' }, 'The model as the client named it.'),
      query('key', { type: 'string' }, 'The id of a key.'),
      query('status', { type: 'string', enum: RECEIPT_STATUSES }, 'How the request ended.'),
      query('from', { type: 'string' }, `Created at or after: ${TIME}.`),
      query('to', { type: 'string' }, `Created before: ${TIME}.`),
    ],
    answer: json('ReceiptList'),
  },
  {
    method: 'get',
    path: '/v1/receipts/{request_id}',
    summary: 'One receipt, from the moment its id was returned',
    scope: null,
    places: [...KEY, 'receipt'],
    parameters: [inPath('request_id', 'The x-request-id of an answer.')],
    answer: json('Receipt'),
  },
  {
    method: 'get',
    path: '/v1/usage',
    summary: 'Sums of receipts by day or hour, by model or key',
    scope: 'receipts:read',
    places: [...KEY, 'query', 'limiter'],
    parameters: [
      query('from', { type: 'string' }, `From this time on: ${TIME}.`, true),
      query('to', { type: 'string' }, `Up to this time: ${TIME}.`, true),
      query('bucket_width', { type: 'string', enum: ['1d', '1h'], default: '1d' }, 'Days or hours, in UTC.'),
      query('group_by', { type: 'string', enum: ['model', 'key'], default: 'model' }, 'What is summed apart.'),
    ],
    answer: json('UsageList'),
  },
  {
    method: 'get',
    path: '/v1/credits',
    summary: 'Balance, held, spent, and what is left of each limit',
    scope: 'receipts:read',
    places: [...KEY, 'limiter'],
    parameters: [],
    answer: json('Credits'),
  },
];
const OPEN: readonly ApiRoute[] = [
  ['/health', 'Liveness; touches nothing', json('Health')] as const,
  ['/openapi.json', 'This document', { 'application/json': { type: 'object' } }] as const,
  ['/docs', 'This API for people, and the key maker', { 'text/html': { type: 'string' } }] as const,
].map(([path, summary, answer]) => ({ method: 'get', path, summary, places: ['everywhere'], parameters: [], answer }));

/** Every route there is. */
export const API_ROUTES: readonly ApiRoute[] = [
  ...SERVED_ENDPOINTS.map(({ path }): ApiRoute => {
    const [summary = path, answer = 'Response', event = 'Response'] = INFERENCE[path] ?? [];
    const stream = {
      type: 'string',
      description: `With stream: true: events whose data is a ${event}, see the README.`,
    };
    return {
      method: 'post',
      path,
      summary,
      scope: 'inference:write',
      places: [...KEY, 'inference'],
      parameters: [],
      answer: { ...json(answer), 'text/event-stream': stream },
    };
  }),
  ...READS,
  ...OPEN,
];

/** Made at the first request for it: most isolates are never asked, and the address alone differs. */
let described: JsonSchema | null = null;

/** The document, for a gateway at an origin. */
export function describeApi(origin: string): JsonSchema {
  described ??= describeAll();
  return { openapi: '3.1.0', servers: [{ url: origin }], ...described };
}

function describeAll(): JsonSchema {
  const paths: Record<string, Record<string, JsonSchema>> = {};
  for (const route of API_ROUTES) paths[route.path] = { ...paths[route.path], [route.method]: describeRoute(route) };
  return {
    info: {
      title: 'Turnpike',
      version: VERSION,
      description:
        'An OpenAI-compatible inference gateway. Every answer carries x-request-id, which names its receipt. ' +
        `Inside a stream that has begun an error is one event: ${listCodes('stream').join(', ')}, or one of the codes of 502.`,
    },
    security: [{ key: [] }],
    paths,
    components: {
      schemas: API_SCHEMAS,
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'tp_<id>_<secret>' } },
    },
  };
}

function describeRoute(route: ApiRoute): JsonSchema {
  const { scope, parameters, summary, answer, path } = route;
  const schema = route.method === 'post' ? readRequestSchema(path) : null;
  const needs = scope === null ? 'Own receipts; with the scope receipts:read the workspace’s.' : `Scope: ${scope}.`;
  return {
    operationId: `${route.method}${path.replaceAll(/[^A-Za-z]+(\w?)/g, (_, letter: string) => letter.toUpperCase())}`,
    summary,
    ...(scope === undefined ? { security: [] } : { description: needs }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(schema === null ? {} : { requestBody: { required: true, content: { 'application/json': { schema } } } }),
    responses: {
      200: {
        description: 'OK',
        headers: { 'x-request-id': { schema: { type: 'string' }, description: 'Names the request.' } },
        content: Object.fromEntries(Object.entries(answer).map(([type, of]) => [type, { schema: of }])),
      },
      ...describeErrors(API_ERRORS.filter(({ places }) => places.some((place) => route.places.includes(place)))),
    },
  };
}

function describeErrors(errors: readonly ApiError[]): Record<string, JsonSchema> {
  const byStatus = Map.groupBy(errors, ({ status }) => String(status));
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } };
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => {
      const description = group.map(({ code, when }) => `\`${code}\`: ${when}`).join('; ');
      return [status, { description, content }];
    }),
  );
}

function listCodes(place: ErrorPlace): readonly string[] {
  return API_ERRORS.filter(({ places }) => places.includes(place)).map(({ code }) => code);
}
