// What the doctor says of wrangler.toml: the bindings the Worker needs, in every environment, since wrangler hands none of
// them down (SPEC §11).

import { writeCount } from './command-result.ts';
import { faultOf, type Finding, wellAs } from './doctor.ts';

/** The bindings of one environment, as wrangler reads them. */
export type Bindings = {
  /** null is the top level. */
  readonly environment: string | null;
  readonly kv: readonly string[];
  readonly d1: readonly { readonly binding: string; readonly name: string | undefined }[];
  readonly objects: readonly string[];
  readonly services: readonly string[];
  readonly flags: readonly string[];
  readonly crons: readonly string[];
  readonly account: string | undefined;
};

const KV = ['KEYS', 'CATALOG'];
const FLAGS = ['enable_request_signal', 'request_signal_passthrough'];
/** What the daily run and the replays need. */
const CRONS_MIN = 2;

/** Findings of all environments; the first is the top level. */
export function checkBindings(environments: readonly Bindings[]): readonly Finding[] {
  return environments.flatMap((bindings) => {
    const what = bindings.environment === null ? 'wrangler.toml' : `wrangler.toml, [env.${bindings.environment}]`;
    const faults = listFaults(bindings).map(([detail, fix]) => faultOf(what, detail, fix));
    const backends = writeCount(bindings.services.length, 'backend');
    const detail = `KV, D1, ledger and ${backends} bound (${bindings.services.join(', ')})`;
    return faults.length === 0 ? [wellAs(what, detail)] : faults;
  });
}

function listFaults(bindings: Bindings): readonly (readonly [detail: string, fix: string])[] {
  const prefix = bindings.environment === null ? '' : `env.${bindings.environment}.`;
  const faults: (readonly [string, string])[] = [];
  for (const name of KV) {
    if (!bindings.kv.includes(name))
      faults.push([`no KV namespace ${name}`, `add [[${prefix}kv_namespaces]] with binding = "${name}"`]);
  }
  if (!bindings.d1.some(({ binding }) => binding === 'DB')) {
    faults.push(['no D1 database DB', `add [[${prefix}d1_databases]] with binding = "DB" and a database of its own`]);
  }
  if (!bindings.objects.includes('LEDGER')) {
    faults.push([
      'no Durable Object LEDGER',
      `add [[${prefix}durable_objects.bindings]] with name = "LEDGER", class_name = "Ledger"`,
    ]);
  }
  if (bindings.services.length === 0) {
    faults.push(['no backend', `add [[${prefix}services]] for each bridge, as in the README`]);
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

/** Databases that two environments share: receipts of both would be in one. */
export function checkShared(environments: readonly Bindings[]): readonly Finding[] {
  const owners = new Map<string, string[]>();
  for (const { environment, d1 } of environments) {
    for (const { name } of d1)
      if (name !== undefined) owners.set(name, [...(owners.get(name) ?? []), environment ?? 'the top level']);
  }
  return [...owners]
    .filter(([, named]) => named.length > 1)
    .map(([name, named]) =>
      faultOf(
        'wrangler.toml',
        `${named.join(' and ')} share the D1 database ${name}`,
        'give each environment a database of its own',
      ),
    );
}
