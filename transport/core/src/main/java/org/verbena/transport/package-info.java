/** The parts that providers share, and the choice of a provider. */
package org.verbena.transport;
