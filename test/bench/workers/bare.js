// The bench's yardstick: hands the request to the bridge and returns its answer untouched, so no byte enters JavaScript.

export default {
  fetch(request, env) {
    return env.UPSTREAM.fetch(request);
  },
};
