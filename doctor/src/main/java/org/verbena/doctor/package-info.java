/**
 * Checks whether this machine can use RDMA, and whether it can reach a peer. Each check has evidence, a verdict and
 * what to do. Begin with {@link org.verbena.doctor.Doctor}.
 */
package org.verbena.doctor;
