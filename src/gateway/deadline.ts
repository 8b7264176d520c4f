// Waiting with an end: the promise's value, or `deadline` after its time. The timer never outlives the wait.

/**
 * Waits for `promise` at most `deadlineMs`, then calls `onDeadline`, which should make the promise settle.
 * A promise that settles late is the caller's no longer.
 */
export async function withDeadline<T>(
  promise: Promise<T>,
  deadlineMs: number,
  onDeadline: () => void,
): Promise<T | 'deadline'> {
  let timer: ReturnType<typeof setTimeout> | null = null;
  const late = new Promise<'deadline'>((resolve) => {
    timer = setTimeout(() => {
      onDeadline();
      resolve('deadline');
    }, deadlineMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    if (timer !== null) clearTimeout(timer);
  }
}

/** Waits `durationMs`. */
export async function sleep(durationMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    setTimeout(resolve, durationMs);
  });
}
