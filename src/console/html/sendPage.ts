import type { FastifyReply } from 'fastify'

/** Answers with a page that `layout` has made; with 200 where the reply has no other code. */
export const sendPage = (reply: FastifyReply, page: string): FastifyReply =>
  reply.type('text/html; charset=utf-8').send(page)
