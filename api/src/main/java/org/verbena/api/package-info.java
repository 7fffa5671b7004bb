/** The Channel API: RDMA connections as Netty channels, one-sided operations, and a short form. */
package org.verbena.api;
