/**
 * The objects of libibverbs, from {@link org.verbena.verbs.Verbs} and {@link org.verbena.verbs.Device} down to queues,
 * and what they are made of. Values that need no object are in the packages below.
 */
package org.verbena.verbs;
