// What the commands of the operator's command line work with: stores, files, this terminal. Types only.

import type { Writable } from 'node:stream';
import type { Command } from 'commander';
import type { CommandResult } from './command-result.ts';
import type { OperatorStore } from './operator-store.ts';
import type { Progress } from './receipt-commands.ts';

/** Where a command works: options of every command. */
export type Place = { readonly remote: boolean; readonly state: string; readonly env?: string; readonly json: boolean };

/** What the program works with. */
export type ProgramPorts = {
  readonly openStore: (place: Place) => Promise<OperatorStore>;
  /** The backends that catalogs may name. */
  readonly readBindings: (place: Place) => Promise<ReadonlySet<string>>;
  readonly readFile: (path: string) => string;
  readonly runDoctor: (store: OperatorStore, place: Place, options: DoctorOptions) => Promise<CommandResult>;
  readonly print: (text: string) => void;
  readonly note: (text: string) => void;
  readonly stdout: Writable;
  readonly progress: () => Progress;
  readonly now: () => number;
  /** Fires when the person wants a command that follows to end. */
  readonly stopped: AbortSignal;
};

export type DoctorOptions = { readonly url?: string; readonly key?: string; readonly model?: string };

/** What a command does with the stores. */
export type Run = (store: OperatorStore, place: Place) => Promise<CommandResult>;

/** Opens the stores, runs a command, prints what it says and closes them. */
export type Runner = (command: Command, does: Run) => Promise<void>;
