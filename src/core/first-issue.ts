// What is wrong with data that a person typed, in one line: the first fault and where it is.

import type * as z from 'zod';

/** The first issue with its path; a fault of the whole is at `root`. */
export function firstIssue(error: z.ZodError, root: string): string {
  const issue = error.issues[0];
  return issue === undefined ? 'invalid' : `${issue.path.join('.') || root}: ${issue.message}`;
}
