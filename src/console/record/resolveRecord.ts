import { reasonProblem } from '../../operations/actor.ts'
import { operatorOf } from '../../operations/databases.ts'
import {
  previewResolution,
  type ResolveAnswer,
  resolveOptionProblems,
  resolveSubmission,
} from '../../operations/resolve.ts'
import type { Viewer } from '../guard/viewer.ts'
import { formText } from '../html/form.ts'
import type { ConsoleParts } from '../parts.ts'
import type { Fields } from '../records/recordsQuery.ts'
import type { ResolvePreview } from './actionsHtml.ts'

type Resolving =
  | { kind: 'refused'; message: string }
  | { kind: 'preview'; preview: ResolvePreview }
  | { kind: 'done'; id: string; message: string }

export async function resolveRecord(
  parts: ConsoleParts,
  viewer: Viewer,
  name: string,
  fields: Fields,
): Promise<Resolving> {
  const answer = answerOf(fields)
  const reason = formText(fields, 'reason') ?? null
  const wrongReason = reason === null ? null : reasonProblem(reason)
  const problems = [...resolveOptionProblems(answer), ...(wrongReason === null ? [] : [`the reason ${wrongReason}`])]
  if (problems.length > 0) return refused(`${problems.join('\n')}.`)
  const databases = await parts.databases()
  const found = await previewResolution(databases, name, answer)
  if (found.kind !== 'found') return refused(`there is no record ${name}`)
  const { settling, outcome: would, question } = found
  const { id, outboxId, revision } = settling.submission
  if (String(revision) !== fields.revision)
    return refused(
      `outbox:${outboxId} has changed since this page was loaded, so nothing was done. Load the page again.`,
    )
  if (would.kind === 'left') return refused(would.reason)
  if (fields.confirmed === undefined)
    return { kind: 'preview', preview: { id, revision, answer, message: would.message, question } }
  const said: string[] = []
  const outcome = await resolveSubmission(
    {
      operator: operatorOf(databases, { who: viewer.who, reason }),
      askService: parts.askService,
      onTestimony: (message) => void said.push(`${message}.`),
    },
    settling,
    answer,
  )
  return outcome.kind === 'left'
    ? refused(outcome.reason)
    : { kind: 'done', id, message: [...said, outcome.message].join('\n') }
}

const refused = (message: string): Resolving => ({ kind: 'refused', message })

function answerOf(fields: Fields): ResolveAnswer {
  const { answer } = fields
  return {
    arrived: answer === 'arrived' ? (formText(fields, 'transaction') ?? '') : undefined,
    notArrived: answer === 'not-arrived',
    takeBack: answer === 'take-back',
    unchecked: fields.unchecked !== undefined,
    newKey: fields['new-key'] !== undefined,
  }
}
