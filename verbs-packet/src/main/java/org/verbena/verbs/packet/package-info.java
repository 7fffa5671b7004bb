/**
 * Raw packets by libibverbs: rules that steer them ({@link org.verbena.verbs.packet.Flow}), count and change them, and
 * queues that they are spread to ({@link org.verbena.verbs.packet.IndirectionTable}). Messages need none of it.
 */
package org.verbena.verbs.packet;
