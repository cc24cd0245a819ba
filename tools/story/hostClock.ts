import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Debian's package libfaketime. With it, a program has its own clock, which can be set while the program runs. */
const library = ['x86_64', 'aarch64']
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path))

/** @returns the reason why this machine cannot do this; null if it can */
export const explainMissingHostClock = (): string | null =>
  library === undefined ? 'the clock of one program can be set with Debian’s libfaketime alone' : null

const file = (folder: string) => join(folder, 'clock')

/** Environment of a program whose clock can be set. Durations are measured as usual. */
export const createClockEnvironment = (folder: string): Record<string, string> => ({
  LD_PRELOAD: library ?? '',
  FAKETIME_TIMESTAMP_FILE: file(folder),
  FAKETIME_NO_CACHE: '1',
  FAKETIME_DONT_FAKE_MONOTONIC: '1',
})

/** Sets the clock of a program that has this environment. */
export const setHostClock = (folder: string, seconds: number): Promise<void> => writeFile(file(folder), String(seconds))
