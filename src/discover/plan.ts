import type { Given, Need, Question, Sample } from './question.ts'

/** What is to be asked, and what cannot be. */
export interface Plan {
  asked: readonly Question[]
  left: readonly { question: Question; why: string }[]
  /** The most requests that all of it takes, and the most records that it creates. */
  requestsMax: number
  recordsMax: number
}

/** Chooses, in the order in which the questions are listed, those that can be asked. Pure. @param only names; null for all */
export function planQuestions(questions: readonly Question[], given: Given, only: readonly string[] | null): Plan {
  const wanted = questions.filter(({ name }) => only === null || only.includes(name))
  const missingFor = ({ needs }: Question) => needs.find((need) => given[need] === null || given[need] === false)
  const asked = wanted.filter((question) => missingFor(question) === undefined)
  const left = wanted.flatMap((question) => {
    const need = missingFor(question)
    return need === undefined ? [] : [{ question, why: `${option[need]} was not given` }]
  })
  const parts = [...asked, ...new Set(asked.flatMap((question) => [...samplesOf(question)]))]
  return { asked, left, requestsMax: sum(parts, 'requestsMax'), recordsMax: sum(parts, 'recordsMax') }
}

/** The most requests that a question takes yet, beside the samples that were taken. Pure. */
export function costOf(question: Question, isTaken: (sample: Sample<unknown>) => boolean): number {
  return sum([question, ...[...samplesOf(question)].filter((sample) => !isTaken(sample))], 'requestsMax')
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
export function samplesOf({ samples }: Pick<Question, 'samples'>): Set<Sample<unknown>> {
  return new Set(samples.flatMap((sample) => [...samplesOf(sample), sample]))
}

const sum = <K extends string>(all: readonly Record<K, number>[], key: K) =>
  all.reduce((total, each) => total + each[key], 0)
