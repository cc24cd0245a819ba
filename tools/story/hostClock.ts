import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Debian's package libfaketime; the clock of one program is another than the machine's, and can be set while it runs. */
const library = ['x86_64', 'aarch64']
  .map((machine) => `/usr/lib/${machine}-linux-gnu/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path))

/** @returns null where we can, or why not */
export const whyNoHostClock = (): string | null =>
  library === undefined ? 'the clock of one program can be set with Debian’s libfaketime alone' : null

const file = (folder: string) => join(folder, 'clock')

/** Environment of a program whose clock can be set; time that goes by is measured as ever. */
export const withOwnClock = (folder: string): Record<string, string> => ({
  LD_PRELOAD: library ?? '',
  FAKETIME_TIMESTAMP_FILE: file(folder),
  FAKETIME_NO_CACHE: '1',
  FAKETIME_DONT_FAKE_MONOTONIC: '1',
})

/** Sets the clock of a program that was started so. */
export const setHostClock = (folder: string, seconds: number): Promise<void> => writeFile(file(folder), String(seconds))
