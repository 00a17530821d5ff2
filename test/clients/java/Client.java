/*
 * Amazon's lock client, told on standard input what to do: a command on each line, the answer
 * to each on one line of standard output.
 *
 *	java Client URL
 *
 *	pairs THREADS SECONDS		each thread acquires and releases a lock of its own in turn;
 *								"PAIRS SECONDS REQUESTS"
 */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.LongAdder;

import com.amazonaws.services.dynamodbv2.AcquireLockOptions;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClientOptions;

import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.interceptor.Context;
import software.amazon.awssdk.core.interceptor.ExecutionAttributes;
import software.amazon.awssdk.core.interceptor.ExecutionInterceptor;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;

public class Client
{
	private static final LongAdder requests = new LongAdder();

	private static final ExecutionInterceptor counter = new ExecutionInterceptor()
	{
		@Override
		public void beforeTransmission(Context.BeforeTransmission context, ExecutionAttributes attributes)
		{
			requests.increment();
		}
	};

	public static void main(String[] args) throws Exception
	{
		BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
		DynamoDbClient dynamoDb = DynamoDbClient.builder().region(Region.US_EAST_1)
			.endpointOverride(URI.create(args[0]))
			.credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("test", "test")))
			.overrideConfiguration(c -> c.addExecutionInterceptor(counter)).build();

		for (String line; (line = commands.readLine()) != null; )
		{
			String[] words = line.split(" ");

			if (!words[0].equals("pairs"))
				throw new IllegalArgumentException(line);
			System.out.println(pairs(dynamoDb, Integer.parseInt(words[1]), Double.parseDouble(words[2])));
		}
		System.exit(0);
	}

	/*
	 * A lock costs this client three requests whatever its options say, and one more at each
	 * heartbeat. These locks are not held for long enough to need any.
	 */
	private static String pairs(DynamoDbClient dynamoDb, int threads, double seconds) throws Exception
	{
		ExecutorService pool = Executors.newFixedThreadPool(threads);
		AmazonDynamoDBLockClient client = new AmazonDynamoDBLockClient(
			AmazonDynamoDBLockClientOptions.builder(dynamoDb, "lockTable")
				.withCreateHeartbeatBackgroundThread(false).build());
		List<Callable<Long>> loops = new ArrayList<>();
		long requestsBefore = requests.sum();
		long start = System.nanoTime();
		long end = start + (long) (seconds * 1e9);
		long count = 0;

		for (int i = 0; i < threads; i++)
		{
			AcquireLockOptions options = AcquireLockOptions.builder("java " + i).build();

			loops.add(() ->
			{
				long done = 0;

				for (; System.nanoTime() < end; done++)
				{
					if (!client.releaseLock(client.acquireLock(options)))
						throw new IllegalStateException("a lock was lost");
				}
				return done;
			});
		}
		for (Future<Long> loop : pool.invokeAll(loops))
			count += loop.get();
		double took = (System.nanoTime() - start) / 1e9;

		pool.shutdown();
		return String.format("%d %.3f %d", count, took, requests.sum() - requestsBefore);
	}
}
