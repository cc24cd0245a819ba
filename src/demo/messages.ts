import { join } from 'node:path'
import { mainFile } from './command.ts'
import type { Installation } from './installation.ts'
import { duration } from './liveView.ts'
import type { ServiceCount } from './runScenario.ts'
import type { KindVerification, Verification } from './verify.ts'

/** What the demo says in the end. */

const isCheckout = mainFile.endsWith('.ts')
/** As it works in the terminal in which the demo was started, whichever Node comes first there. */
const outboxd = isCheckout ? 'npx node src/main.ts' : 'outboxd'
const keepCommand = isCheckout ? 'npm run demo -- --keep' : 'outboxd demo --keep'
const allowedInAMinute = 100
const problemsShown = 20

/** Whether all is as it should be: the records, and the limit. */
export function isAsItHasToBe(verdict: Verification, service: ServiceCount): boolean {
  return verdict.problems.length === 0 && service.mostInAMinute <= allowedInAMinute
}

export function outcomeTable(verdict: Verification): string {
  const head = ['kind', 'sent by the ERP', 'ended as', 'exactly once at the service', 'equal to the cent']
  const rows = [head, ...verdict.kinds.map(cells)]
  const widths = head.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const written = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  return [written[0], widths.map((width) => '-'.repeat(width)).join('  '), ...written.slice(1), ''].join('\n')
}

function cells(kind: KindVerification): string[] {
  const { label, written, endedAs, exactly, equal, requests, kept } = kind
  const ends = [...endedAs].map(([message, n]) => `${message} ${n}`).join(', ') || 'not in the outbox'
  const of = (n: number) => `${n} of ${written}`
  const once = kept ? of(exactly) : requests ? `asked once, refused: ${of(exactly)}` : `never sent: ${of(exactly)}`
  return [label, String(written), ends, once, requests ? of(equal) : '-']
}

export function sentences(verdict: Verification, service: ServiceCount, tookMs: number): string {
  const { requests, mostInAMinute } = service
  const total = sum(verdict.kinds, ({ written }) => written)
  const kept = sum(verdict.kinds, (kind) => kind.written * kind.kept)
  const counted = `The service counted ${requests} requests; at most ${mostInAMinute} came in any 60 seconds, and ${allowedInAMinute} are allowed.`
  if (isAsItHasToBe(verdict, service)) {
    return [
      `All ${total} records are through after ${duration(tookMs)}. Those that are wrong were rejected, and their outbox rows say why.`,
      `The service's own ledger holds each of the other ${kept} exactly once, and no other.`,
      `Every amount that arrived is equal to the cent to what the ERP wrote (digits compared with digits).`,
      counted,
      '',
    ].join('\n')
  }
  const { problems } = verdict
  const more = problems.length - problemsShown
  return [
    'It is NOT as it should be:',
    ...problems.slice(0, problemsShown).map((problem) => `  ${problem}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
    ...(mostInAMinute > allowedInAMinute ? ['  the service was sent more requests than the limit allows'] : []),
    counted,
    '',
  ].join('\n')
}

function sum(kinds: readonly KindVerification[], of: (kind: KindVerification) => number): number {
  return kinds.reduce((total, kind) => total + of(kind), 0)
}

/** For a demo that is over. */
export function nextWithoutKeep(): string {
  return `
Try next
  ${keepCommand.padEnd(32)} the same, and everything stays up to look around in
  ${(isCheckout ? 'npm run demo -- --records 200' : 'outboxd demo --records 200').padEnd(32)} more than the limit allows in a minute: watch the budget
  ${`${outboxd} --help`.padEnd(32)} all commands
`
}

/** For a demo that stays up: where everything is, and what to do with it. */
export function nextWithKeep({ variables, sandboxUrl, daemonUrl, consoleUrl, folder }: Installation): string {
  const { DATABASE_URL: erpUrl } = variables
  const exports = Object.entries(variables).map(([name, value]) => `export ${name}='${value}'`)
  return `
Everything stays up until you press Ctrl-C here:
  the console          ${consoleUrl}    to look, rather than read
  the ERP's database   ${erpUrl}
  the sandbox          ${sandboxUrl}/_sandbox/ledger
  the daemon           ${daemonUrl}/metrics
  the logs             ${join(folder, 'run.log')}, ${join(folder, 'sandbox.log')}

In another terminal${isCheckout ? ', in this checkout' : ''}:

${exports.join('\n')}

Try next
  ${outboxd} status                 states, budget, pauses
  ${outboxd} list                   what waits for a person
  ${outboxd} show outbox:3          one record: what happened to it, and why
  ${outboxd} map --outbox 1         the request that a record becomes
  with psql, where it is installed:
  psql "$DATABASE_URL" -c "insert into sales_order (number, type, customer, category, amount) values ('SO-MINE', 'data', 'C-1', 'value1', 19.99)"
  psql "$DATABASE_URL" -c 'select id, type, key, status, transaction_id, error from outbox order by id desc limit 10'
  curl -X PATCH --json '{"failureShare": 0.5}' "$SERVICE_BASE_URL/_sandbox/settings"    from now on half of the transactions fail
`
}
