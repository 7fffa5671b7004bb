/** Software RDMA provider: iWARP (RDMAP over DDP over MPA over TCP) in pure Java. */
package org.verbena.transport.soft;
