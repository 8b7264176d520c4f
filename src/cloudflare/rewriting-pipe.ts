// A pipe whose text is rewritten by one synchronous call per chunk: HTMLRewriter, which runs natively and enters JavaScript
// for nothing but the call. That it parses HTML is kept from mattering by its first bytes.

import { type Pipe } from '../gateway/ports.ts';

/**
 * This start tag puts an HTML parser into the state in which everything up to the end is text, closing tags included
 * (WHATWG HTML §13.2.5.5, PLAINTEXT state).
 */
const PLAINTEXT = new TextEncoder().encode('<plaintext>');

/** Opens a rewriting pipe. */
export function openRewritingPipe(rewrite: (text: string) => string): Pipe {
  const { readable, writable } = new IdentityTransformStream();
  const rewriter = new HTMLRewriter().on('plaintext', {
    element(tag) {
      tag.removeAndKeepContent();
    },
    text(chunk) {
      const { text } = chunk;
      if (text === '') return;
      const rewritten = rewrite(text);
      if (rewritten === '') chunk.remove();
      else if (rewritten !== text) chunk.replace(rewritten, { html: true });
    },
  });
  const { body } = rewriter.transform(new Response(readable));
  if (body === null) throw new Error('a response that was made with a body has none');
  const writer = writable.getWriter();
  // Whoever writes next waits behind it and learns of a failure.
  writer.write(PLAINTEXT).catch(() => undefined);
  writer.releaseLock();
  return { readable: body, writable };
}
