// What the operator did or met while starting: said in one line, with the exit code that goes with it. Anything else that
// is thrown is a bug and keeps its stack.

/** An error whose message is written for the person at the terminal. Exit code 2 is for usage, 1 for the rest. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2 = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The shortest true reason in whatever was thrown: `fetch failed` hides ECONNREFUSED in its cause. */
export function toReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause: unknown = error.cause;
  if (cause instanceof Error) return 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.message;
  return error.message;
}
