import type { Told } from './judge.ts'
import type { Chapter } from './story.ts'
import { atFullLengthMs } from './tenfold.ts'

/** The table of docs/run/slo.md; below it what `outboxd status` said first for each fault, and what is wrong. */
export function printStory(chapters: readonly Chapter[], impossible: readonly { name: string; why: string }[]): string {
  const rows = chapters.map(({ fault, verdict, keptAway }) => [
    `${fault.name}: ${fault.what}`,
    verdict.expected === null ? 'none' : verdict.expected.name,
    verdict.expected === null ? '' : showMinutes(verdict.expected),
    String(verdict.calls),
    verdict.others.map((told) => `${told.name} (${showMinutes(told)})`).join(', '),
    keptAway.join(', '),
  ])
  const heads = ['fault', 'alert', 'after', 'calls', 'fires with it', 'kept away']
  const table = [heads, heads.map(() => '---'), ...rows].map((cells) => `| ${cells.map(cell).join(' | ')} |`)
  const faulty = chapters.flatMap(({ fault, verdict }) => verdict.faulty.map((words) => `${fault.name}: ${words}`))
  return [
    ...table,
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

/** Rounded up: what the daemon itself waits for goes no quicker in the story. */
const showMinutes = ({ afterMs }: Told) => `${Math.ceil(atFullLengthMs(afterMs) / 60_000)} min`
