// What a process has used so far, from /proc: CPU of all its threads, user and system, and resident memory. Linux only.

import { readdirSync, readFileSync } from 'node:fs';

/** Linux counts a process's times in hundredths of a second, whatever the kernel's own tick. */
const TICK_US = 10_000;

/** CPU in microseconds since the process began. */
export function readCpuUs(pid: number): number {
  return readThreadTimes(pid) ?? readProcessTimes(pid);
}

/** Resident memory in bytes. */
export function readRssBytes(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) * 1024;
}

/** The same time as in `stat`, but in nanoseconds: a short run is not lost in ticks. workerd's threads live as long as it. */
function readThreadTimes(pid: number): number | null {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    const times = threads.map((thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
    return times.reduce((sum, ns) => sum + Number(ns) / 1000, 0);
  } catch {
    return null;
  }
}

function readProcessTimes(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name in brackets may hold anything; the fields behind it are counted from the third.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_US;
}
