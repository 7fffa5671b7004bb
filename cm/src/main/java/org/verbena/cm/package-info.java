/**
 * FFM bindings to librdmacm: connections and datagram services over RDMA devices.
 *
 * <p>{@link org.verbena.cm.CmId} is the place to start; {@link org.verbena.cm.Cm#unavailabilityCause} tells whether there is anything to
 * start with.
 */
package org.verbena.cm;
