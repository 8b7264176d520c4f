// What one writes first: the bridge's answer through a TransformStream in JavaScript that passes each chunk on unread.

export default {
  async fetch(request, env) {
    const response = await env.UPSTREAM.fetch(request);
    const pass = new TransformStream({
      transform(chunk, controller) {
        controller.enqueue(chunk);
      },
    });
    return new Response(response.body.pipeThrough(pass), response);
  },
};
