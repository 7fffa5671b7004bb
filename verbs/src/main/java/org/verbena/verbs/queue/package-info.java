/** Kinds, states and attributes of queue pairs and of receive work queues. */
package org.verbena.verbs.queue;
