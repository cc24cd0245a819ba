import { join } from 'node:path'
import { type Installation, startDemo } from '../demo/installation.ts'
import { expectedMinutesMessage, formatOutcome, isAllCorrect, runOrders } from '../demo/runOrders.ts'
import { programFile } from '../packageFolder.ts'
import { abortWhenNpxEnds } from './terminal/abortWhenNpxEnds.ts'
import { defineCommand, wholeNumberParser } from './terminal/command.ts'
import { untilAborted } from './terminal/context.ts'

const isCheckout = programFile.endsWith('.ts')
/** In a checkout `npx node` runs the right Node, whichever is first on the PATH. */
const outboxd = isCheckout ? 'npx node src/main.ts' : 'outboxd'
const demo = isCheckout ? 'npm run demo --' : 'outboxd demo'

const recordsDefault = 40
const recordsMax = 10_000

export const command = defineCommand({
  withoutMappings: true,
  description: 'try outboxd with an embedded Postgres as the ERP, the sandbox and a daemon',
  options: [
    [
      '--records <number>',
      'records that the ERP writes',
      { read: wholeNumberParser(1, recordsMax), default: recordsDefault },
    ],
    ['--keep', 'keep everything running until Ctrl-C, with the console'],
  ],
  help: `Needs no configuration, no installed Postgres and no network. Everything is on loopback and in temporary folders, and is removed at the end.
Some records are wrong on purpose: an unknown customer, an amount with three decimals.
Exit code 0 if each record ended as it should, and the sandbox got it exactly once, with its amount to the cent (three decimals:
never); otherwise 1.

Examples:
  outboxd demo                        40 records, in under 30 seconds
  outboxd demo --records 200          more than the limit of 100 requests a minute allows: takes minutes
  outboxd demo --keep                 to look around: the console, status, list, show, psql and curl
  npm run demo -- --keep              the same in a checkout`,
  async action(context, { records, keep = false }): Promise<number> {
    const { env, stdout, stderr } = context
    const signal = abortWhenNpxEnds(context.signal, env)
    const print = (message: string) => void stderr.write(`${message}\n`)
    try {
      await using installation = await startDemo({ env, signal, hasConsole: keep, print })
      print(`the ERP inserts ${records} rows into sales_order; a trigger writes the outbox`)
      stderr.write(expectedMinutesMessage(records))
      print('outboxd status --watch')
      const outcome = await runOrders(installation, { records, signal, print: (line) => print(`  ${line}`) })
      stdout.write(`\n${formatOutcome(outcome)}`)
      stdout.write(keep ? nextWithKeep(installation) : nextWithoutKeep())
      if (keep) await Promise.race([untilAborted(signal), installation.broken])
      return isAllCorrect(outcome) ? 0 : 1
    } catch (error) {
      if (!signal.aborted) throw error
      print('demo: stopped before the end; everything was removed')
      return 1
    }
  },
})

function nextWithoutKeep(): string {
  return `
Try next
  ${`${demo} --keep`.padEnd(32)} the same, and everything keeps running
  ${`${demo} --records 200`.padEnd(32)} more than the limit allows in a minute: watch the budget
  ${`${outboxd} --help`.padEnd(32)} all commands
`
}

function nextWithKeep({ variables, sandboxUrl, daemonUrl, consoleUrl, folder }: Installation): string {
  const exports = Object.entries(variables).map(([name, value]) => `export ${name}='${value}'`)
  return `
Everything keeps running until you press Ctrl-C here:
  the console          ${consoleUrl}    shows the same in a browser
  the ERP's database   ${variables.DATABASE_URL}
  the sandbox          ${sandboxUrl}/_sandbox/ledger
  the daemon           ${daemonUrl}/metrics
  the logs             ${join(folder, 'run.log')}, ${join(folder, 'console.log')}

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
