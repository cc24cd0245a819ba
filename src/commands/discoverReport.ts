import type { Answered } from '../discover/askQuestions.ts'
import { settingsOf } from '../discover/settingsFile.ts'
import { renderTable, truncate } from '../plainText.ts'

/** What was found, for people: a table, what the daemon could not cope with, what to set. Pure. */
export function discoverReport(answered: readonly Answered[]): string {
  return [
    table(answered),
    section('WITH THIS THE DAEMON COULD NOT COPE', trouble(answered)),
    section('SET', settings(answered)),
    section('LOOK AT', advice(answered)),
    section('NOT FOUND OUT', open(answered)),
  ]
    .filter((part) => part !== '')
    .join('\n')
}

function table(answered: readonly Answered[]): string {
  const rows = answered
    .filter(({ finding }) => finding.found !== null)
    .map(({ question, finding }) => [
      question.name,
      truncate(finding.found ?? '', 40),
      finding.certainty,
      finding.differs ? 'differs' : '',
      finding.assumed ?? '',
    ])
  return renderTable(['QUESTION', 'FOUND', 'CERTAINTY', '', 'ASSUMED UNTIL NOW'], rows)
}

const trouble = (answered: readonly Answered[]) =>
  answered.flatMap(({ question, finding }) =>
    finding.cannot === null ? [] : [`${question.name}: ${finding.found ?? finding.why}: ${finding.cannot}`],
  )

const settings = (answered: readonly Answered[]) =>
  settingsOf(answered).map(({ variable, value, why }) => `${variable}=${value}  (${why})`)

const advice = (answered: readonly Answered[]) =>
  answered.flatMap(({ question, finding }) => finding.advice.map((each) => `${question.name}: ${each}`))

const open = (answered: readonly Answered[]) =>
  answered.flatMap(({ question, finding }) =>
    finding.found === null ? [`${question.name} (${finding.certainty}): ${finding.why}`] : [],
  )

/** A part with a head; none where there is nothing to say. */
const section = (head: string, lines: readonly string[]) =>
  lines.length === 0 ? '' : `${head}\n${lines.map((line) => `  ${line.replace(/\s+/g, ' ')}\n`).join('')}`
