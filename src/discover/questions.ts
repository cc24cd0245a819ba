import type { Question } from './question.ts'
import { address } from './questions/address.ts'
import { amount } from './questions/amount.ts'
import { badToken } from './questions/badToken.ts'
import { bodySize } from './questions/bodySize.ts'
import { clock } from './questions/clock.ts'
import { compression } from './questions/compression.ts'
import { customerLength } from './questions/customerLength.ts'
import { e002 } from './questions/e002.ts'
import { e003 } from './questions/e003.ts'
import { errorBody } from './questions/errorBody.ts'
import { field1 } from './questions/field1.ts'
import { field2 } from './questions/field2.ts'
import { httpVersion } from './questions/httpVersion.ts'
import { idempotency } from './questions/idempotency.ts'
import { idempotencyHeader } from './questions/idempotencyHeader.ts'
import { keepAlive } from './questions/keepAlive.ts'
import { longCustomer } from './questions/longCustomer.ts'
import { mappedFields } from './questions/mappedFields.ts'
import { oddId } from './questions/oddId.ts'
import { order } from './questions/order.ts'
import { orderCreatedAt } from './questions/orderCreatedAt.ts'
import { orderDate } from './questions/orderDate.ts'
import { orderItemShape } from './questions/orderItemShape.ts'
import { orderItems } from './questions/orderItems.ts'
import { orderStatus } from './questions/orderStatus.ts'
import { orderUnknownCustomer } from './questions/orderUnknownCustomer.ts'
import { otherMethod } from './questions/otherMethod.ts'
import { ownId } from './questions/ownId.ts'
import { processingTime } from './questions/processingTime.ts'
import { rateHeader } from './questions/rateHeader.ts'
import { rateLimit } from './questions/rateLimit.ts'
import { rateOrders } from './questions/rateOrders.ts'
import { ratePolls } from './questions/ratePolls.ts'
import { rateRefusal } from './questions/rateRefusal.ts'
import { rateScope } from './questions/rateScope.ts'
import { rateTokens } from './questions/rateTokens.ts'
import { rateWindow } from './questions/rateWindow.ts'
import { redirects } from './questions/redirects.ts'
import { responseTime } from './questions/responseTime.ts'
import { result } from './questions/result.ts'
import { secondToken } from './questions/secondToken.ts'
import { statusValues } from './questions/statusValues.ts'
import { submission } from './questions/submission.ts'
import { tls } from './questions/tls.ts'
import { tokenFields } from './questions/tokenFields.ts'
import { tokenHeld } from './questions/tokenHeld.ts'
import { tokenLifetime } from './questions/tokenLifetime.ts'
import { tokenUnit } from './questions/tokenUnit.ts'
import { transactionId } from './questions/transactionId.ts'
import { unknownCustomer } from './questions/unknownCustomer.ts'
import { unknownId } from './questions/unknownId.ts'
import { unknownOrder } from './questions/unknownOrder.ts'
import { unknownPath } from './questions/unknownPath.ts'
import { wrongSecret } from './questions/wrongSecret.ts'

/**
 * Every question, in the order in which they are asked: what changes nothing first, then records, and at the end what looks
 * at all that was answered. Where the budget ends, the last ones are left.
 */
export const questions: readonly Question[] = [
  tokenUnit,
  tokenFields,
  address,
  unknownId,
  badToken,
  rateScope,
  ratePolls,
  rateOrders,
  rateTokens,
  rateLimit,
  rateWindow,
  secondToken,
  submission,
  transactionId,
  statusValues,
  processingTime,
  result,
  mappedFields,
  idempotency,
  idempotencyHeader,
  ownId,
  e002,
  e003,
  unknownCustomer,
  amount,
  orderDate,
  order,
  orderItems,
  orderItemShape,
  orderStatus,
  orderCreatedAt,
  orderUnknownCustomer,
  unknownOrder,
  wrongSecret,
  unknownPath,
  otherMethod,
  oddId,
  customerLength,
  longCustomer,
  field1,
  field2,
  bodySize,
  httpVersion,
  keepAlive,
  tls,
  tokenLifetime,
  tokenHeld,
  errorBody,
  rateHeader,
  compression,
  redirects,
  clock,
  responseTime,
  rateRefusal,
]
