import { join } from 'node:path'
import type { Installation } from './installation.ts'
import { mainFile } from './startCommand.ts'

const isCheckout = mainFile.endsWith('.ts')
/** Works in the terminal of the demo, whichever Node is first on its PATH. */
const outboxd = isCheckout ? 'npx node src/main.ts' : 'outboxd'
const demo = isCheckout ? 'npm run demo --' : 'outboxd demo'

export function nextWithoutKeep(): string {
  return `
Try next
  ${`${demo} --keep`.padEnd(32)} the same, and everything keeps running
  ${`${demo} --records 200`.padEnd(32)} more than the limit allows in a minute: watch the budget
  ${`${outboxd} --help`.padEnd(32)} all commands
`
}

export function nextWithKeep({ variables, sandboxUrl, daemonUrl, consoleUrl, folder }: Installation): string {
  const exports = Object.entries(variables).map(([name, value]) => `export ${name}='${value}'`)
  return `
Everything keeps running until you press Ctrl-C here:
  the console          ${consoleUrl}    to look, rather than read
  the ERP's database   ${variables.DATABASE_URL}
  the sandbox          ${sandboxUrl}/_sandbox/ledger
  the daemon           ${daemonUrl}/metrics
  the logs             ${join(folder, 'run.log')}, ${join(folder, 'sandbox.log')}

In another terminal${isCheckout ? ', in this checkout' : ''}:

${exports.join('\n')}

Try next
  ${outboxd} status                 states, budget, pauses
  ${outboxd} list                   what needs attention
  ${outboxd} show outbox:3          one record: what happened, and why
  ${outboxd} map --outbox 1         the request that a record becomes
  if psql is installed:
  psql "$DATABASE_URL" -c "insert into sales_order (number, type, customer, category, amount) values ('SO-MINE', 'data', 'C-1', 'value1', 19.99)"
  psql "$DATABASE_URL" -c 'select id, type, key, status, transaction_id, error from outbox order by id desc limit 10'
  curl -X PATCH --json '{"failureShare": 0.5}' "$SERVICE_BASE_URL/_sandbox/settings"    from now on half of the transactions fail
`
}
