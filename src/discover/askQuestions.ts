import type { OwnedParts } from './createParts.ts'
import { type Finding, notAsked, unknown } from './finding.ts'
import { costOf, type Plan } from './plan.ts'
import { CannotAsk, NoAnswer, type Question, Stopped } from './question.ts'

/** What was found out about one question. */
export interface Answered {
  question: Question
  finding: Finding
}

/** Asks what the plan has, one question after the other, as far as the budget goes. @param onAnswered told of each as it comes */
export async function askQuestions(
  { asked, left }: Plan,
  { ask, left: requestsLeft, isTaken }: OwnedParts,
  onAnswered: (answered: Answered) => void,
): Promise<Answered[]> {
  const answered: Answered[] = []
  for (const question of asked) {
    const [cost, most] = [costOf(question, isTaken), requestsLeft()]
    const finding =
      cost > most
        ? notAsked(`it may take ${cost} requests, and --budget leaves ${most}`)
        : await ask(question).catch(explainUnanswered)
    answered.push({ question, finding })
    onAnswered({ question, finding })
  }
  return [...answered, ...left.map(({ question, why }) => ({ question, finding: notAsked(why) }))]
}

/** @throws what is no matter of the service */
function explainUnanswered(error: unknown): Finding {
  if (error instanceof NoAnswer) return unknown(error.message)
  if (error instanceof CannotAsk || error instanceof Stopped) return notAsked(error.message)
  throw error
}
