/**
 * Checks whether this machine can use RDMA, and whether a peer can be reached: each with evidence, a verdict and what
 * to do. {@link org.verbena.doctor.Doctor} is where to begin.
 */
package org.verbena.doctor;
