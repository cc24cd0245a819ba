import type { ChainHead } from '../ledger/audit/chain.ts'
import type { ChainVerdict } from '../ledger/audit/verifyChain.ts'
import { verifyChain } from '../ledger/audit/verifyChain.ts'
import { pluralize } from '../plainText.ts'
import { type CommandContext, createProgress, exit, printJson, usageError } from './terminal/context.ts'
import { withDatabases } from './terminal/withDatabases.ts'

export interface VerifyOptions {
  noted?: string | undefined
  json?: boolean | undefined
}

/** Reckons the logs' chain anew. @returns 1 where something is not as it says, 3 where there is no chain yet */
export async function auditVerify(context: CommandContext, options: VerifyOptions): Promise<number> {
  const noted = options.noted === undefined ? null : readHead(options.noted)
  if (noted === undefined)
    return usageError(context, ['--noted takes a head as outboxd audit --verify prints it: NUMBER:HASH'])
  return withDatabases(context, async (databases) => {
    const tell = createProgress(
      context,
      ({ blocks, entries }: ChainVerdict) => `${pluralize(blocks, 'block')} with ${entries} entries so far ...`,
    )
    const verdict = await verifyChain(databases.ledger, noted, tell)
    if (options.json) printJson(context, verdict)
    else if (verdict.head !== null) context.stdout.write(`${verdict.head.number}:${verdict.head.hash}\n`)
    for (const line of messages(verdict, noted)) context.stderr.write(`${line}\n`)
    if (verdict.broken !== null) return exit.failed
    return verdict.head === null ? exit.nothing : exit.done
  })
}

/** @returns undefined where it is none */
function readHead(text: string): ChainHead | undefined {
  const [, number, hash] = /^(\d{1,18}):([0-9a-f]{64})$/.exec(text.trim()) ?? []
  return number === undefined || hash === undefined ? undefined : { number, hash }
}

function messages({ broken, head, blocks, entries, reduced, gone, waiting }: ChainVerdict, noted: ChainHead | null) {
  const not = waiting === 0 ? '' : ` ${waiting} written since are not in it yet.`
  if (broken !== null)
    return [`The chain is broken: ${broken}.`, 'What stands before it is as it was; nothing behind it was looked at.']
  if (head === null) return [`There is no chain yet.${not} A daemon makes it, within a minute.`]
  const less =
    reduced + gone === 0
      ? ''
      : `; of ${reduced} something was emptied or erased, and ${gone} more went with pruned records`
  return [
    `The chain holds: ${pluralize(blocks, 'block')}, ${entries} entries as they were written${less}.${not}`,
    noted === null
      ? 'Note its head, above, where whoever owns the database cannot write: --noted then proves that nothing before it was written anew.'
      : `It has the head that was noted (block ${noted.number}).`,
  ]
}
