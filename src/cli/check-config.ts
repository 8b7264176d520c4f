// What the doctor says of wrangler.toml: the bindings the Worker needs, in every environment, since wrangler hands none of
// them down (SPEC §11).

import { writeCount } from './command-result.ts';
import { faultOf, type Finding, wellAs } from './doctor.ts';

/** The bindings of one environment, as wrangler reads them. */
export type Bindings = {
  /** null is the top level. */
  readonly environment: string | null;
  readonly kv: readonly string[];
  readonly d1: readonly string[];
  readonly objects: readonly string[];
  readonly services: readonly string[];
  readonly flags: readonly string[];
  readonly crons: readonly string[];
  readonly account: string | undefined;
  /** Stores by kind and name or id: no two environments should have the same. */
  readonly stores: readonly string[];
};

const KV = ['KEYS', 'CATALOG'];
const FLAGS = ['enable_request_signal', 'request_signal_passthrough'];
/** What the daily run and the replays need. */
const CRONS_MIN = 2;

/** Findings of all environments; the first is the top level. */
export function checkBindings(environments: readonly Bindings[]): readonly Finding[] {
  const backends = new Set(environments.flatMap(({ services }) => services));
  return environments.flatMap((bindings) => {
    const what = bindings.environment === null ? 'wrangler.toml' : `wrangler.toml, [env.${bindings.environment}]`;
    const faults = listFaults(bindings, backends).map(([detail, fix]) => faultOf(what, detail, fix));
    const count = writeCount(bindings.services.length, 'backend');
    const detail = `KV, D1, ledger and ${count} bound (${bindings.services.join(', ')})`;
    return faults.length === 0 ? [wellAs(what, detail)] : faults;
  });
}

/** @param backends The backends of all environments: one catalog should serve in each. */
function listFaults(
  bindings: Bindings,
  backends: ReadonlySet<string>,
): readonly (readonly [detail: string, fix: string])[] {
  const prefix = bindings.environment === null ? '' : `env.${bindings.environment}.`;
  const faults: (readonly [string, string])[] = [];
  for (const name of KV) {
    if (!bindings.kv.includes(name))
      faults.push([`no KV namespace ${name}`, `add [[${prefix}kv_namespaces]] with binding = "${name}"`]);
  }
  if (!bindings.d1.includes('DB')) {
    faults.push(['no D1 database DB', `add [[${prefix}d1_databases]] with binding = "DB" and a database of its own`]);
  }
  if (!bindings.objects.includes('LEDGER')) {
    faults.push([
      'no Durable Object LEDGER',
      `add [[${prefix}durable_objects.bindings]] with name = "LEDGER", class_name = "Ledger"`,
    ]);
  }
  if (backends.size === 0) faults.push(['no backend', `add [[${prefix}services]] for each bridge, as in the README`]);
  for (const name of backends) {
    if (bindings.services.includes(name)) continue;
    faults.push([
      `no backend ${name}, which another environment has`,
      `add [[${prefix}services]] with binding = "${name}"`,
    ]);
  }
  for (const flag of FLAGS) {
    if (!bindings.flags.includes(flag))
      faults.push([`the flag ${flag} is missing`, `add it to ${prefix}compatibility_flags`]);
  }
  if (bindings.crons.length < CRONS_MIN) {
    faults.push([
      'the crons are missing',
      `copy [triggers] to [${prefix}triggers]: closing days and replays hang on it`,
    ]);
  }
  if (bindings.account !== undefined)
    faults.push(["an account's id is in it", 'take account_id out: set CLOUDFLARE_ACCOUNT_ID instead']);
  return faults;
}

/** Stores that two environments share: keys, catalogs and receipts of both would be in one. */
export function checkShared(environments: readonly Bindings[]): readonly Finding[] {
  const owners = new Map<string, string[]>();
  for (const { environment, stores } of environments) {
    for (const store of stores) owners.set(store, [...(owners.get(store) ?? []), environment ?? 'the top level']);
  }
  return [...owners]
    .filter(([, named]) => named.length > 1)
    .map(([store, named]) => {
      return faultOf(
        'wrangler.toml',
        `${named.join(' and ')} share the ${store}`,
        'give each environment one of its own',
      );
    });
}
