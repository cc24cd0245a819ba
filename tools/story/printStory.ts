import type { Told } from './judge.ts'
import type { Chapter } from './story.ts'
import { toFullLengthMs } from './tenfold.ts'

/**
 * Returns the table of tools/README.md. Below it stand, for each fault, the calls and other alerts, the first line of
 * `outboxd status`, and what is wrong.
 */
export function printStory(chapters: readonly Chapter[], impossible: readonly { name: string; why: string }[]): string {
  const rows = chapters.map(({ fault, verdict: { expected } }) => [
    `${fault.name}: ${fault.what}`,
    expected === null ? 'none' : expected.name,
    expected === null ? '' : showMinutes(expected),
  ])
  const heads = ['fault', 'alert', 'after']
  const table = [heads, heads.map(() => '---'), ...rows].map((cells) => `| ${cells.map(cell).join(' | ')} |`)
  const faulty = chapters.flatMap(({ fault, verdict }) => verdict.faulty.map((words) => `${fault.name}: ${words}`))
  return [
    ...table,
    '',
    ...chapters.map(
      ({ fault, verdict: { calls, others }, keptAway }) =>
        `${fault.name}: calls: ${calls}; fires with it: ${others.map(showTold).join(', ') || '-'}; kept away: ${keptAway.join(', ') || '-'}`,
    ),
    '',
    ...chapters.map(({ fault, status }) => `${fault.name}: outboxd status says first: ${shorten(status)}`),
    '',
    ...impossible.map(({ name, why }) => `not tried here: ${name}: ${why}`),
    faulty.length === 0 ? 'each fault was told, by an alert that names it' : `${faulty.length} NOT AS IT SHOULD BE`,
    ...faulty,
    '',
  ].join('\n')
}

const statusShown = 90

const shorten = (text: string) => (text.length <= statusShown ? text : `${text.slice(0, statusShown).trimEnd()}…`)

const cell = (text: string) => text.replaceAll('|', '\\|')

const showTold = (told: Told) => `${told.name} (${showMinutes(told)})`

/** Rounded up, because the daemon's own waits are not shorter in the story. */
const showMinutes = ({ afterMs }: Told) => `${Math.ceil(toFullLengthMs(afterMs) / 60_000)} min`
