/** A request that is not answered as it was meant; the message is for the page. */
export class Refused extends Error {
  override name = 'Refused'
  readonly statusCode: number
  constructor(statusCode: number, message: string) {
    super(message)
    this.statusCode = statusCode
  }
}
