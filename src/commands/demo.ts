import { installDemo } from '../demo/installation.ts'
import { nextWithKeep, nextWithoutKeep } from '../demo/nextSteps.ts'
import { expectationText, isAllCorrect, outcomeText, runOrders } from '../demo/runOrders.ts'
import { abortWhenNpxEnds } from './terminal/abortWhenNpxEnds.ts'
import { defineCommand, wholeNumberParser } from './terminal/command.ts'
import { untilAborted } from './terminal/context.ts'

const recordsDefault = 40
const recordsMax = 10_000

export const command = defineCommand({
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
Exit code 0 if each record ended as it should, is in the sandbox's ledger exactly once, and is equal to the cent; otherwise 1.

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
      await using installation = await installDemo({ env, signal, hasConsole: keep, print })
      print(`the ERP inserts ${records} rows into sales_order; a trigger writes the outbox`)
      stderr.write(expectationText(records))
      print('outboxd status --watch')
      const outcome = await runOrders(installation, { records, signal, print: (line) => print(`  ${line}`) })
      stdout.write(`\n${outcomeText(outcome)}`)
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
