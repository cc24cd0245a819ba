import type { Told } from './judge.ts'
import type { Chapter } from './story.ts'
import { atFullLengthMs } from './tenfold.ts'

/** The table of docs/slo.md, and below it what is wrong. */
export function printStory(chapters: readonly Chapter[], impossible: readonly { name: string; why: string }[]): string {
  const rows = chapters.map(({ fault, verdict, status, keptAway }) => [
    `${fault.name}: ${fault.what}`,
    verdict.expected === null ? 'none' : verdict.expected.name,
    verdict.expected === null ? '' : showMinutes(verdict.expected),
    String(verdict.calls),
    verdict.others.map((told) => `${told.name} (${showMinutes(told)})`).join(', '),
    keptAway.join(', '),
    shorten(status),
  ])
  const heads = ['fault', 'alert', 'after', 'calls', 'told with it', 'kept away', '`outboxd status` says first']
  const table = [heads, heads.map(() => '---'), ...rows].map((cells) => `| ${cells.map(cell).join(' | ')} |`)
  const faulty = chapters.flatMap(({ fault, verdict }) => verdict.faulty.map((words) => `${fault.name}: ${words}`))
  return [
    ...table,
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
