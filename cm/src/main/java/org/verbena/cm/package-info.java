/**
 * FFM bindings to librdmacm: connections and datagram services over RDMA devices.
 *
 * <p>Begin with {@link org.verbena.cm.CmId}; {@link org.verbena.cm.Cm#unavailabilityCause} reports whether it can work
 * here.
 */
package org.verbena.cm;
