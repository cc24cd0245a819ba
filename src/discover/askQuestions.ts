import { isWanted, type OwnedParts } from './createParts.ts'
import { type Finding, notAsked, unknown } from './finding.ts'
import { CannotAsk, type Given, type Need, NoAnswer, type Question, type Sample, Stopped } from './question.ts'
import { customerOf } from './testRecord.ts'

/** What was found out about one question. */
export interface Answered {
  question: Question
  finding: Finding
}

/** Asks the questions of the plan one after the other, as far as the budget goes. @param onAnswered told of each as it comes */
export async function askQuestions(
  { asked, left, given }: Plan,
  { ask, left: requestsLeft, isTaken }: OwnedParts,
  onAnswered: (answered: Answered) => void,
): Promise<Answered[]> {
  const answered: Answered[] = []
  for (const question of asked) {
    const [cost, most] = [costOf(question, given, isTaken), requestsLeft()]
    const finding =
      cost > most
        ? notAsked(`it may take ${cost} requests, and --budget leaves ${most}`)
        : await ask(question).catch(explainUnanswered)
    answered.push({ question, finding })
    onAnswered({ question, finding })
  }
  return [...answered, ...left.map(({ question, why }) => ({ question, finding: notAsked(why) }))]
}

/** @throws an error that is not about the service */
function explainUnanswered(error: unknown): Finding {
  if (error instanceof NoAnswer) return unknown(error.message)
  if (error instanceof CannotAsk || error instanceof Stopped) return notAsked(error.message)
  throw error
}

/** What is to be asked, and what cannot be. */
export interface Plan {
  asked: readonly Question[]
  left: readonly { question: Question; why: string }[]
  given: Given
  /** The most requests that all of it takes, and the most records that it creates. */
  requestsMax: number
  recordsMax: number
}

/** Chooses, in the order in which the questions are listed, those that can be asked. Pure. @param only names; null for all */
export function planQuestions(questions: readonly Question[], given: Given, only: readonly string[] | null): Plan {
  const wanted = questions.filter(({ name }) => only === null || only.includes(name))
  const asked = wanted.filter((question) => missingFor(question, given) === undefined)
  const left = wanted.flatMap((question) => {
    const need = missingFor(question, given)
    return need === undefined ? [] : [{ question, why: `${option[need]} was not given` }]
  })
  const parts = [...asked, ...new Set(asked.flatMap((question) => [...samplesOf(question, given)]))]
  return { asked, left, given, requestsMax: sum(parts, 'requestsMax'), recordsMax: sum(parts, 'recordsMax') }
}

function missingFor({ needs }: Question, given: Given): Need | undefined {
  return needs.find((need) => !(need === 'customer' ? customerOf(given) : given[need]))
}

/** The most requests that a question takes yet, beside the samples that were taken. Pure. */
function costOf(question: Question, given: Given, isTaken: (sample: Sample<unknown>) => boolean): number {
  return sum([question, ...[...samplesOf(question, given)].filter((sample) => !isTaken(sample))], 'requestsMax')
}

const option: Record<Need, string> = {
  customer: '--customer ID (a customer that the service knows)',
  unknownCustomer: '--unknown-customer ID (one that it does not know)',
  orderCustomer: '--order-customer UUID (one that may order)',
  slow: '--slow',
  rate: '--rate',
  size: '--size',
}

/** All samples that are taken for a question, each once. */
export function samplesOf({ samples }: Pick<Question, 'samples'>, given: Given): Set<Sample<unknown>> {
  const wanted = samples.filter((sample) => isWanted(sample, given))
  return new Set(wanted.flatMap((sample) => [...samplesOf(sample, given), sample]))
}

const sum = <K extends string>(all: readonly Record<K, number>[], key: K) =>
  all.reduce((total, each) => total + each[key], 0)
