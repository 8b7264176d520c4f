// What engines answer when asked for their load: texts shaped after vLLM 0.11, SGLang 0.5, llama-server, TGI 3 and
// Ollama 0.12, shortened. By path below the server's root; whatever is not listed is 404 there.

export const VLLM_METRICS = `# HELP python_gc_objects_collected_total Objects collected during gc
# TYPE python_gc_objects_collected_total counter
python_gc_objects_collected_total{generation="0"} 8127.0
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="Qwen/Qwen3-8B"} 3.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="Qwen/Qwen3-8B"} 0.0
# HELP vllm:num_requests_waiting_by_reason Number of requests waiting, by reason.
# TYPE vllm:num_requests_waiting_by_reason gauge
vllm:num_requests_waiting_by_reason{engine="0",model_name="Qwen/Qwen3-8B",reason="capacity"} 7.0
# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="Qwen/Qwen3-8B"} 0.0734
# HELP vllm:time_to_first_token_seconds Histogram of time to first token in seconds.
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="Qwen/Qwen3-8B"} 0.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="Qwen/Qwen3-8B"} 44.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="Qwen/Qwen3-8B"} 44.0
`;

/** Two data-parallel engines behind one API server. */
export const VLLM_METRICS_OF_TWO = `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 12.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 0.0
vllm:num_requests_waiting{engine="1",model_name="m"} 1.0e+01
`;

export const SGLANG_METRICS = `# HELP sglang:num_running_reqs The number of running requests.
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="meta-llama/Llama-3.1-8B-Instruct",pp_rank="0",tp_rank="0"} 161.0
# HELP sglang:num_running_reqs_offline_batch The number of running low-priority offline batch requests(label is 'batch').
# TYPE sglang:num_running_reqs_offline_batch gauge
sglang:num_running_reqs_offline_batch{engine_type="unified",model_name="meta-llama/Llama-3.1-8B-Instruct"} 9.0
# HELP sglang:token_usage The token usage.
# TYPE sglang:token_usage gauge
sglang:token_usage{engine_type="unified",model_name="meta-llama/Llama-3.1-8B-Instruct",pp_rank="0",tp_rank="0"} 0.28
# HELP sglang:num_queue_reqs The number of requests in the waiting queue.
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{engine_type="unified",model_name="meta-llama/Llama-3.1-8B-Instruct",pp_rank="0",tp_rank="0"} 2826.0
`;

/** With --enable-priority-scheduling: the whole, and beside it a series for each priority. */
export const SGLANG_METRICS_BY_PRIORITY = `# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m",priority=""} 5.0
sglang:num_running_reqs{model_name="m",priority="0"} 2.0
sglang:num_running_reqs{model_name="m",priority="10"} 3.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="m",priority=""} 4.0
sglang:num_queue_reqs{priority="0",model_name="m"} 4.0
`;

export const SGLANG_LOADS = JSON.stringify({
  timestamp: '2026-11-30T12:00:00+00:00',
  version: '0.5.8',
  dp_rank_count: 2,
  loads: [
    { dp_rank: 0, num_running_reqs: 3, num_waiting_reqs: 2, num_total_reqs: 5, token_usage: 0.2 },
    { dp_rank: 1, num_running_reqs: 7, num_waiting_reqs: 5, num_total_reqs: 12, token_usage: 0.95 },
  ],
});

export const SGLANG_OLD_LOADS = JSON.stringify([
  { dp_rank: 0, num_reqs: 5, num_waiting_reqs: 2, num_tokens: 4096 },
  { dp_rank: 1, num_reqs: 1, num_waiting_reqs: 0, num_tokens: 12 },
]);

export const LLAMACPP_METRICS = `# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 17029
# HELP llamacpp:predicted_tokens_seconds Average generation throughput in tokens/s.
# TYPE llamacpp:predicted_tokens_seconds gauge
llamacpp:predicted_tokens_seconds 128.5
# HELP llamacpp:requests_processing Number of requests processing.
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 4
# HELP llamacpp:requests_deferred Number of requests deferred.
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 46
`;

/** An older server still tells the prompts of its slots. */
export const LLAMACPP_SLOTS = JSON.stringify([
  { id: 0, id_task: 135, n_ctx: 65536, speculative: false, is_processing: true, prompt: 'a caller’s own words' },
  { id: 1, id_task: 137, n_ctx: 65536, speculative: false, is_processing: true, next_token: [{ n_decoded: 136 }] },
  { id: 2, n_ctx: 65536, speculative: false, is_processing: false },
]);

export const TGI_METRICS = `# HELP tgi_queue_size Current queue size
# TYPE tgi_queue_size gauge
tgi_queue_size 7
# HELP tgi_batch_current_size Current batch size
# TYPE tgi_batch_current_size gauge
tgi_batch_current_size 4
# TYPE tgi_batch_current_max_tokens gauge
tgi_batch_current_max_tokens 2048
`;

export const OLLAMA_PS = JSON.stringify({
  models: [
    {
      name: 'llama3.2:3b',
      model: 'llama3.2:3b',
      size: 3_367_856_128,
      digest: 'a80c4f17acd55265feec403c7aef86be0c25983ab279d83f3bcd3abbcb5b8b72',
      details: { parent_model: '', format: 'gguf', family: 'llama', parameter_size: '3.2B' },
      expires_at: '2026-11-30T12:05:00.1Z',
      size_vram: 3_367_856_128,
      context_length: 4096,
    },
  ],
});
