// The inference endpoints there are. A catalog may list more; what is not here is not offered.

import { chatCompletions } from './chat-completions.ts';
import { type Endpoint } from './endpoint.ts';
import { responses } from './responses.ts';
import { textCompletions } from './text-completions.ts';

/** Every endpoint the gateway serves. */
export const SERVED_ENDPOINTS: readonly Endpoint[] = [chatCompletions, textCompletions, responses];
