/**
 * Raw packets by libibverbs: rules that steer them ({@link org.verbena.verbs.packet.Flow}), count and change them, and
 * queues that they are spread to ({@link org.verbena.verbs.packet.IndirectionTable}). Also shared receive queues that
 * match messages by tags ({@link org.verbena.verbs.packet.TagList}). Verbena's own messages need none of it.
 */
package org.verbena.verbs.packet;
