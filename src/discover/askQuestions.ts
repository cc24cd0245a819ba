import type { OwnedQuestionParts } from './createQuestionParts.ts'
import { type Finding, notAskedFinding, unknownFinding } from './finding.ts'
import { CannotAsk, type Given, type Need, NoAnswer, neededSamples, type Question, Stopped } from './question.ts'
import { customerOf } from './testRecord.ts'

export interface Answered {
  question: Question
  finding: Finding
}

export async function askQuestions(
  { asked, left, given }: Plan,
  owned: OwnedQuestionParts,
  onAnswered: (answered: Answered) => void,
): Promise<Answered[]> {
  const answered: Answered[] = []
  for (const question of asked) {
    const toTake = [...neededSamples(question, given)].filter((sample) => !owned.isTaken(sample))
    const cost = sum([question, ...toTake], 'requestsMax')
    const finding =
      cost > owned.sender.left
        ? notAskedFinding(`it may take ${cost} requests, and --budget leaves ${owned.sender.left}`)
        : await askOne(question, given, owned).catch(explainUnanswered)
    answered.push({ question, finding })
    onAnswered({ question, finding })
  }
  return [...answered, ...left.map(({ question, why }) => ({ question, finding: notAskedFinding(why) }))]
}

async function askOne(question: Question, given: Given, { parts, sender }: OwnedQuestionParts): Promise<Finding> {
  sender.asking = question.name
  for (const sample of neededSamples(question, given)) await parts.sample(sample)
  return question.run(parts)
}

function explainUnanswered(error: unknown): Finding {
  if (error instanceof NoAnswer) return unknownFinding(error.message)
  if (error instanceof CannotAsk || error instanceof Stopped) return notAskedFinding(error.message)
  throw error
}

export interface Plan {
  asked: readonly Question[]
  left: readonly { question: Question; why: string }[]
  given: Given
  /** The most requests of all questions, and the most records that these create. */
  requestsMax: number
  recordsMax: number
}

/**
 * Chooses the questions that can be asked, in their order.
 * @param only names; null for all
 */
export function planQuestions(questions: readonly Question[], given: Given, only: readonly string[] | null): Plan {
  const wanted = questions.filter(({ name }) => only === null || only.includes(name))
  const asked = wanted.filter((question) => missingFor(question, given) === undefined)
  const left = wanted.flatMap((question) => {
    const need = missingFor(question, given)
    return need === undefined ? [] : [{ question, why: `${option[need]} was not given` }]
  })
  const parts = [...asked, ...new Set(asked.flatMap((question) => [...neededSamples(question, given)]))]
  return { asked, left, given, requestsMax: sum(parts, 'requestsMax'), recordsMax: sum(parts, 'recordsMax') }
}

function missingFor({ needs }: Question, given: Given): Need | undefined {
  return needs.find((need) => !(need === 'customer' ? customerOf(given) : given[need]))
}

const option: Record<Need, string> = {
  customer: '--customer ID (a customer that the service knows)',
  unknownCustomer: '--unknown-customer ID (a customer that the service does not know)',
  orderCustomer: '--order-customer UUID (a customer that may order)',
  slow: '--slow',
  rate: '--rate',
  size: '--size',
}

const sum = <K extends string>(all: readonly Record<K, number>[], key: K) =>
  all.reduce((total, each) => total + each[key], 0)
