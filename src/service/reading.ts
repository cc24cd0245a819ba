import { type Answer, isSuccess, type PauseCall, type Taken, type TransactionStatus } from '../model.ts'
import type { Resource } from '../resources.ts'
import { describeAnswer, pauseCall, submitPauseCall } from './pauseCall.ts'
import { submittedId, takenIn, transactionStatus } from './responses.ts'

/** What an answer says, in the service's own terms. The stages' decisions take it beside the answer. */
export interface AnswerReading {
  /** The transactionId or orderId that a success gives for a POST; null where there is none that can be used. */
  submittedId: string | null
  /** Whether what stands beside that id says so, too. */
  taken: Taken
  /** Whether the body has a transactionId or orderId, whatever the status says. */
  namesId: boolean
  /** What a success says of a transaction or order; null where it says nothing that can be read. */
  transaction: TransactionStatus | null
  /** The pause it calls for, a 401 taken for a second one; null where it calls for none. */
  pause: PauseCall | null
  /** One line for the operator. */
  summary: string
}

/** Reads an answer to a POST. Pure, and never throws. */
export function readSubmitAnswer(answer: Answer, resource: Resource): AnswerReading {
  return read(answer, resource, submitPauseCall(answer))
}

/** Reads an answer from one of the service's halves. Pure, and never throws. */
export function readAnswer(answer: Answer, resource: Resource): AnswerReading {
  return read(answer, resource, pauseCall(answer))
}

function read(answer: Answer, resource: Resource, pause: PauseCall | null): AnswerReading {
  if (answer.kind === 'no-answer')
    return { submittedId: null, taken: 'unclear', namesId: false, transaction: null, pause, summary: answer.detail }
  const success = isSuccess(answer.status)
  const id = submittedId(resource, answer.json)
  return {
    submittedId: success ? id : null,
    taken: takenIn(answer.json, answer.code),
    namesId: id !== null,
    transaction: success ? transactionStatus(resource, answer.json) : null,
    pause,
    summary: describeAnswer(answer),
  }
}
