import { requireFirstCallAllowed } from './judges/refusals.ts'
import {
  CannotAsk,
  type Finding,
  type NeededOption,
  NoUsableAnswer,
  notAskedFinding,
  type Question,
  type QuestionOptions,
  QuestionsStopped,
  unknownFinding,
} from './question.ts'
import type { QuestionContext } from './questionContext.ts'
import { customerIdOf } from './testRecord.ts'

export interface AnsweredQuestion {
  question: Question
  finding: Finding
}

export interface QuestionPlan {
  asked: readonly Question[]
  notAsked: readonly { question: Question; why: string }[]
  given: QuestionOptions
}

/** @param only null for all questions */
export function planQuestions(
  questions: readonly Question[],
  given: QuestionOptions,
  only: readonly string[] | null,
): QuestionPlan {
  const wanted = questions.filter(({ name }) => only === null || only.includes(name))
  const asked = wanted.filter((question) => missingFor(question, given) === undefined)
  const notAsked = wanted.flatMap((question) => {
    const need = missingFor(question, given)
    return need === undefined ? [] : [{ question, why: `${option[need]} was not given` }]
  })
  return { asked, notAsked, given }
}

const missingFor = ({ needs }: Question, given: QuestionOptions): NeededOption | undefined =>
  needs.find((need) => !(need === 'customer' ? customerIdOf(given) : given[need]))

const option: Record<NeededOption, string> = {
  customer: '--customer ID (a customer that the service knows)',
  unknownCustomer: '--unknown-customer ID (a customer that the service does not know)',
  orderCustomer: '--order-customer UUID (a customer that may order)',
  slow: '--slow',
  rate: '--rate',
  size: '--size',
}

export async function askQuestions(
  { asked, notAsked }: QuestionPlan,
  parts: QuestionContext,
  onAnswered: (answered: AnsweredQuestion) => void,
): Promise<AnsweredQuestion[]> {
  const answered: AnsweredQuestion[] = []
  for (const question of asked) {
    parts.sender.purpose = question.name
    const finding = await askOne(question, parts).catch(explainUnanswered)
    answered.push({ question, finding })
    onAnswered({ question, finding })
  }
  return [...answered, ...notAsked.map(({ question, why }) => ({ question, finding: notAskedFinding(why) }))]
}

/** Asked even if the service lets nothing in, because these questions find out why. */
const firstQuestions = ['token-unit', 'address']

async function askOne(question: Question, parts: QuestionContext): Promise<Finding> {
  if (!firstQuestions.includes(question.name)) await requireFirstCallAllowed(parts)
  return question.run(parts)
}

function explainUnanswered(error: unknown): Finding {
  if (error instanceof NoUsableAnswer) return unknownFinding(error.message)
  if (error instanceof CannotAsk || error instanceof QuestionsStopped) return notAskedFinding(error.message)
  throw error
}
