import type { Given, Need, Question, Sample } from './question.ts'

/** What will be asked, and what will not. */
export interface Plan {
  asked: readonly Question[]
  left: readonly { question: Question; why: string }[]
  /** The most requests that it takes, and the most records that it creates. */
  requestsMax: number
  recordsMax: number
}

export interface PlanOptions {
  given: Given
  budget: number
  /** Names of questions; null for all. */
  only: readonly string[] | null
}

/** Chooses, in the order in which the questions are listed, those that can be asked and fit into the budget. Pure. */
export function planQuestions(questions: readonly Question[], { given, budget, only }: PlanOptions): Plan {
  const asked: Question[] = []
  const left: { question: Question; why: string }[] = []
  const taken = new Set<Sample<unknown>>()
  let [requestsMax, recordsMax] = [0, 0]
  for (const question of questions) {
    if (only !== null && !only.includes(question.name)) continue
    const missing = question.needs.find((need) => given[need] === null || given[need] === false)
    if (missing !== undefined) {
      left.push({ question, why: `${option[missing]} was not given` })
      continue
    }
    const added = [...samplesOf(question)].filter((sample) => !taken.has(sample))
    const requests = sum([question, ...added], 'requestsMax')
    if (requestsMax + requests > budget) {
      left.push({
        question,
        why: `it may take ${requests} requests, and --budget ${budget} leaves ${budget - requestsMax}`,
      })
      continue
    }
    for (const sample of added) taken.add(sample)
    requestsMax += requests
    recordsMax += sum([question, ...added], 'recordsMax')
    asked.push(question)
  }
  return { asked, left, requestsMax, recordsMax }
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
function samplesOf({ samples }: Pick<Question, 'samples'>): Set<Sample<unknown>> {
  return new Set(samples.flatMap((sample) => [...samplesOf(sample), sample]))
}

const sum = <K extends string>(all: readonly Record<K, number>[], key: K) =>
  all.reduce((total, each) => total + each[key], 0)
