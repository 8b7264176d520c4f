// Bad keys per address, counted by a rate limit binding where one is bound (SPEC §2). It counts per location and
// roughly: a damper, not an account.

import { type FailedKeys } from '../gateway/ports.ts';

/** The damper over a rate limit binding; without one nothing is damped. */
export function createFailedKeys(binding: RateLimit | undefined): FailedKeys {
  return {
    async allow(address) {
      if (binding === undefined) return true;
      const { success } = await binding.limit({ key: address });
      return success;
    },
  };
}
