/**
 * FFM bindings to librdmacm: connections and datagram services over RDMA devices.
 *
 * <p>{@link org.verbena.cm.CmId} is the place to start; {@link org.verbena.cm.Cm#unavailabilityCause} says whether it
 * can work here.
 */
package org.verbena.cm;
